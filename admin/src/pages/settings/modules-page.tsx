import { Box, Flex, Typography } from '@strapi/design-system';
import { Layouts, Page } from '@strapi/strapi/admin';
import { ConfirmSwitch } from '../../components/confirm-switch';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { permissionsFor } from '../../permissions';
import { useModules, useSetModules } from '../../services/settings';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

const Modules = () => {
  const text = useText();
  const outcome = useOutcome();
  const modules = useModules();
  const [set, { isLoading }] = useSetModules();
  return (
    <Page.Main>
      <Page.Title>{text('settings.modules')}</Page.Title>
      <Layouts.Header title={text('settings.modules')} subtitle={text('modules.subtitle')} />
      <Layouts.Content>
        <Loaded query={modules}>
          {({ data: list }) => (
            <Panel>
              <Typography textColor="neutral600">{text('modules.new')}</Typography>
              {list.map(({ id, enabled }) => (
                <Flex key={id} justifyContent="space-between" gap={4}>
                  <Box>
                    <Typography fontWeight="bold" tag="h2">
                      {text(`module.${id}`)}
                    </Typography>
                    <Typography textColor="neutral600" tag="p">
                      {text(`module.${id}.hint`)}
                    </Typography>
                  </Box>
                  <ConfirmSwitch
                    label={text(`module.${id}`)}
                    question={text(
                      id === 'webhooks' ? 'modules.off.webhooks' : 'modules.off.question',
                      { module: text(`module.${id}`) }
                    )}
                    checked={enabled}
                    disabled={isLoading}
                    onLabel={text('module.on')}
                    offLabel={text('module.off')}
                    onChange={(checked) =>
                      set({ [id]: checked }).then((done) => outcome(done, 'modules.saved'))
                    }
                  />
                </Flex>
              ))}
            </Panel>
          )}
        </Loaded>
      </Layouts.Content>
    </Page.Main>
  );
};

const ModulesPage = () => (
  <Page.Protect permissions={permissionsFor('modules.update')}>
    <Modules />
  </Page.Protect>
);

export default ModulesPage;

import { Box, Button, Flex, LinkButton, Typography } from '@strapi/design-system';
import { usePersistentState } from '@strapi/strapi/admin';
import { useEffect, useState } from 'react';
import { useIntl } from 'react-intl';
import { Link } from 'react-router-dom';
import { type Step, type StepLink, STEPS } from './steps';
import en from './translations/en.json';

/** What `npm start` writes once everything is up; where it did not, there is no tour. */
interface Addresses {
  /** When the playground's data was begun: another one has its tour again. */
  started: string;
  receiver: string;
  /** null where no till runs. */
  till: string | null;
}

type Words = (key: string) => string;

const useWords = (): Words => {
  const { formatMessage } = useIntl();
  return (key) => {
    const id = `playground.tour.${key}` as keyof typeof en;
    return formatMessage({ id, defaultMessage: en[id] });
  };
};

const useAddresses = (): Addresses | undefined => {
  const [addresses, setAddresses] = useState<Addresses>();
  useEffect(() => {
    const asked = new AbortController();
    fetch('/playground-tour.json', { cache: 'no-store', signal: asked.signal })
      .then(async (answer) => answer.ok && setAddresses((await answer.json()) as Addresses))
      .catch(() => undefined);
    return () => asked.abort();
  }, []);
  return addresses;
};

const StepButton = ({ link, addresses }: { link: StepLink; addresses: Addresses }) => {
  const words = useWords();
  const label = words(`link.${link.text}`);
  if ('to' in link) {
    return (
      <LinkButton tag={Link} to={link.to} size="S" variant="tertiary">
        {label}
      </LinkButton>
    );
  }
  const href = addresses[link.page];
  if (href === null) return null;
  return (
    <LinkButton href={href} isExternal size="S" variant="tertiary">
      {label}
    </LinkButton>
  );
};

const StepItem = ({ step, at, addresses }: { step: Step; at: number; addresses: Addresses }) => {
  const words = useWords();
  return (
    <Flex tag="li" alignItems="start" gap={3}>
      <Typography variant="omega" fontWeight="bold" textColor="primary600" aria-hidden>
        {at}.
      </Typography>
      <Flex direction="column" alignItems="start" gap={2} minWidth={0}>
        <Box>
          <Typography tag="p" fontWeight="semiBold" textColor="neutral800">
            {words(`${step.id}.do`)}
          </Typography>
          <Typography tag="p" textColor="neutral600">
            {words(`${step.id}.see`)}
          </Typography>
        </Box>
        <Flex gap={2} wrap="wrap">
          {step.links.map((link) => (
            <StepButton key={link.text} link={link} addresses={addresses} />
          ))}
        </Flex>
      </Flex>
    </Flex>
  );
};

const OpenTour = ({ addresses, onHide }: { addresses: Addresses; onHide(): void }) => {
  const words = useWords();
  return (
    <Box
      tag="section"
      aria-labelledby="playground-tour"
      background="neutral0"
      padding={6}
      shadow="filterShadow"
      hasRadius
    >
      <Flex direction="column" alignItems="stretch" gap={5}>
        <Flex justifyContent="space-between" alignItems="start" gap={3} wrap="wrap">
          <Box flex="1" minWidth="16rem">
            <Typography id="playground-tour" variant="delta" tag="h2">
              {words('title')}
            </Typography>
            <Typography tag="p" textColor="neutral600">
              {words('intro')}
            </Typography>
          </Box>
          <Button size="S" variant="tertiary" onClick={onHide}>
            {words('hide')}
          </Button>
        </Flex>
        <Flex tag="ol" direction="column" alignItems="stretch" gap={5}>
          {STEPS.map((step, index) => (
            <StepItem key={step.id} step={step} at={index + 1} addresses={addresses} />
          ))}
        </Flex>
      </Flex>
    </Box>
  );
};

const TourOf = ({ addresses }: { addresses: Addresses }) => {
  const words = useWords();
  const [isHidden, setHidden] = usePersistentState(
    `playground-tour-hidden:${addresses.started}`,
    false
  );
  if (!isHidden) return <OpenTour addresses={addresses} onHide={() => setHidden(true)} />;
  return (
    <Flex justifyContent="flex-end">
      <Button size="S" variant="ghost" onClick={() => setHidden(false)}>
        {words('show')}
      </Button>
    </Flex>
  );
};

/** Things to try in the playground, each with where to go, what to do and what will be seen. */
export const Tour = () => {
  const addresses = useAddresses();
  return addresses ? <TourOf addresses={addresses} /> : null;
};

import { Layouts, Page } from '@strapi/strapi/admin';
import { useText } from '../../utils/text';
import { DeliveryLog } from './delivery-log';

const DeliveriesPage = () => {
  const text = useText();
  return (
    <Page.Main>
      <Page.Title>{text('nav.deliveries')}</Page.Title>
      <Layouts.Header title={text('nav.deliveries')} subtitle={text('log.subtitle')} />
      <Layouts.Content>
        <DeliveryLog />
      </Layouts.Content>
    </Page.Main>
  );
};

export default DeliveriesPage;

import { factories } from '@strapi/strapi';

export default factories.createCoreController('api::inquiry.inquiry' as never);

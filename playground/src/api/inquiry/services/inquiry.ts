import { factories } from '@strapi/strapi';

export default factories.createCoreService('api::inquiry.inquiry' as never);

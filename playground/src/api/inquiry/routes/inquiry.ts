import { factories } from '@strapi/strapi';

export default factories.createCoreRouter('api::inquiry.inquiry' as never);

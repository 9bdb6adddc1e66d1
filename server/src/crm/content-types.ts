import { campaign } from './content-types/campaign';
import { company } from './content-types/company';
import { contact } from './content-types/contact';
import { deal, dealStage } from './content-types/deal';
import { tag } from './content-types/tag';
import { task } from './content-types/task';

/** By singular name, as the host wants them. */
export const contentTypes = {
  contact,
  tag,
  company,
  deal,
  'deal-stage': dealStage,
  task,
  campaign,
};

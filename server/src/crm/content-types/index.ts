import { campaign } from './campaign';
import { company } from './company';
import { contact } from './contact';
import { deal, dealStage } from './deal';
import { tag } from './tag';
import { task } from './task';

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

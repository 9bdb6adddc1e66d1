import { useRBAC } from '@strapi/strapi/admin';
import { useMemo } from 'react';
import { ADMIN_ACTIONS, type AdminAction, adminActionId } from '../../shared/contracts/permissions';

/** A permission as the host's menu, pages and widgets take it: any one of a list opens the door. */
export const permissionsFor = (...actions: AdminAction[]) =>
  actions.map((action) => ({ action: adminActionId(action), subject: null }));

const ALL = ADMIN_ACTIONS.map((action) => ({
  id: undefined,
  action: adminActionId(action),
  subject: null,
  actionParameters: {},
  properties: {},
  conditions: [],
}));

export interface Access {
  isLoading: boolean;
  can(action: AdminAction): boolean;
}

/** What whoever is logged in may do here. The server asks again, whatever the screen shows. */
export const useAccess = (): Access => {
  const { permissions, isLoading } = useRBAC(ALL as never);
  return useMemo(() => {
    const granted = new Set(permissions.map(({ action }) => action));
    return { isLoading, can: (action) => granted.has(adminActionId(action)) };
  }, [permissions, isLoading]);
};

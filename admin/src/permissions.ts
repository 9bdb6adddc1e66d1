import { useAuth } from '@strapi/strapi/admin';
import { createContext, useContext, useMemo } from 'react';
import { type AdminAction, adminActionId } from '../../shared/contracts/permissions';

/** A permission as the host's menu, pages and widgets take it: any one of a list opens the door. */
export const permissionsFor = (...actions: AdminAction[]) =>
  actions.map((action) => ({ action: adminActionId(action), subject: null }));

export interface Access {
  isLoading: boolean;
  can(action: AdminAction): boolean;
}

/**
 * The current user's grants, for `AccessContext`. Read from the host's own list, which follows its
 * request: `useRBAC` asks once, and where that list was still on its way it answers for good that
 * nothing is granted. None of the plugin's actions has a subject that a condition could be about, so
 * being granted is all there is to know.
 */
export const useGrants = (): Access => {
  const isLoading = useAuth('Switchboard', (state) => state.isLoading);
  const permissions = useAuth('Switchboard', (state) => state.permissions);
  return useMemo(() => {
    const granted = new Set(permissions.map(({ action }) => action));
    return { isLoading, can: (action) => !isLoading && granted.has(adminActionId(action)) };
  }, [isLoading, permissions]);
};

/** Outside of a page that asked, nothing is granted. */
export const AccessContext = createContext<Access>({ isLoading: false, can: () => false });

/** The current user's permissions. The server asks again, whatever the screen shows. */
export const useAccess = (): Access => useContext(AccessContext);

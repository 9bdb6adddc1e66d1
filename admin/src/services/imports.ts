import { useAuth, useFetchClient } from '@strapi/strapi/admin';
import { useCallback, useEffect, useRef } from 'react';
import type { FileKind, ImportJob } from '../../../shared/contracts/imports';
import { api, type One } from './api';

const importApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardImport: build.query<ImportJob, number>({
      query: (id) => `/switchboard/imports/${id}`,
      transformResponse: ({ data }: One<ImportJob>) => data,
      keepUnusedDataFor: 0,
      // Only the progress query waits for the end.
      async onQueryStarted(_id, { dispatch, queryFulfilled }) {
        await queryFulfilled.then(
          ({ data: { state, dry_run: dryRun } }) => {
            if (state === 'running' || dryRun) return;
            dispatch(api.util.invalidateTags(['SwitchboardStock', 'SwitchboardEvent']));
          },
          () => undefined
        );
      },
    }),
    /** The rows that failed, or the levels that differ, as a CSV file. */
    switchboardImportRejects: build.query<string, number>({
      query: (id) => ({
        url: `/switchboard/imports/${id}/rejects`,
        config: { responseType: 'text' },
      }),
      keepUnusedDataFor: 0,
    }),
  }),
});

export const {
  useSwitchboardImportQuery: useImportJob,
  useSwitchboardImportRejectsQuery: useImportRejects,
} = importApi;

export interface Upload {
  kind: FileKind;
  dryRun: boolean;
  file: Blob;
}

/**
 * Sends a file as the body of a request, which the host's client, that sends JSON and forms, does
 * not. Resolves once its header was read, while the import goes on.
 */
export const useUpload = () => {
  const token = useAuth('Switchboard', (state) => state.token);
  const current = useRef(token);
  useEffect(() => {
    current.current = token;
  }, [token]);
  const { get } = useFetchClient();
  return useCallback(
    async ({ kind, dryRun, file }: Upload): Promise<{ data: ImportJob } | { error: unknown }> => {
      try {
        // The host's client renews a login that has run out.
        await get('/switchboard/modules');
        await new Promise((resolve) => setTimeout(resolve));
        const query = `dry_run=${String(dryRun)}&wait=false`;
        const answer = await fetch(
          `${window.strapi.backendURL ?? ''}/switchboard/${kind}/import?${query}`,
          {
            method: 'POST',
            headers: { authorization: `Bearer ${current.current}`, 'content-type': 'text/csv' },
            body: file,
          }
        );
        const body = (await answer.json()) as One<ImportJob> & { error?: unknown };
        return answer.ok ? { data: body.data } : { error: body.error ?? new Error() };
      } catch (error) {
        return { error };
      }
    },
    [get]
  );
};

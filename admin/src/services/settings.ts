import type {
  ApplicationPassword,
  ApplicationPasswordInput,
  CreatedApplicationPassword,
} from '../../../shared/contracts/access';
import type { ModuleId, ModulesAnswer } from '../../../shared/contracts/modules';
import type { Attention, MappedType, RecordTypes } from '../../../shared/contracts/overview';
import { api, type One } from './api';

const settingsApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardModules: build.query<ModulesAnswer, void>({
      query: () => '/switchboard/modules',
      providesTags: ['SwitchboardModules'],
    }),
    switchboardSetModules: build.mutation<ModulesAnswer, Partial<Record<ModuleId, boolean>>>({
      query: (data) => ({ url: '/switchboard/modules', method: 'PUT', data }),
      invalidatesTags: [
        'SwitchboardModules',
        'SwitchboardWebhook',
        'SwitchboardWebhookList',
        'SwitchboardHealth',
      ],
    }),
    switchboardAttention: build.query<Attention, void>({
      query: () => '/switchboard/attention',
      transformResponse: ({ data }: One<Attention>) => data,
      providesTags: ['SwitchboardConnection', 'SwitchboardEvent'],
    }),
    switchboardMappedTypes: build.query<MappedType[], void>({
      query: () => '/switchboard/mapped-types',
      transformResponse: ({ data }: { data: MappedType[] }) => data,
    }),
    switchboardRecordTypes: build.query<RecordTypes, void>({
      query: () => '/switchboard/record-types',
      transformResponse: ({ data }: { data: RecordTypes }) => data,
    }),
    switchboardPasswords: build.query<ApplicationPassword[], void>({
      query: () => '/switchboard/application-passwords',
      transformResponse: ({ data }: { data: ApplicationPassword[] }) => data,
      providesTags: ['SwitchboardPasswords'],
    }),
    switchboardCreatePassword: build.mutation<
      CreatedApplicationPassword['data'],
      ApplicationPasswordInput
    >({
      query: (data) => ({ url: '/switchboard/application-passwords', method: 'POST', data }),
      transformResponse: ({ data }: CreatedApplicationPassword) => data,
      invalidatesTags: ['SwitchboardPasswords'],
    }),
    switchboardRevokePassword: build.mutation<unknown, number>({
      query: (id) => ({ url: `/switchboard/application-passwords/${id}`, method: 'DELETE' }),
      invalidatesTags: ['SwitchboardPasswords'],
    }),
  }),
});

export const {
  useSwitchboardModulesQuery: useModules,
  useSwitchboardSetModulesMutation: useSetModules,
  useSwitchboardAttentionQuery: useAttention,
  useSwitchboardMappedTypesQuery: useMappedTypes,
  useSwitchboardRecordTypesQuery: useRecordTypes,
  useSwitchboardPasswordsQuery: usePasswords,
  useSwitchboardCreatePasswordMutation: useCreatePassword,
  useSwitchboardRevokePasswordMutation: useRevokePassword,
} = settingsApi;

import { openGot } from '../../../server/src/net/http-client';
import { openUndici } from '../../../server/src/net/undici-transport';
import { describeHttpClient } from './http-client-contract';

describe('the HTTP client with got', () => describeHttpClient(openGot));

describe('the HTTP client with undici', () => describeHttpClient(openUndici));

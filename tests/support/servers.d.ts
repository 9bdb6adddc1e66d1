export interface Server {
  host: string;
  port: number;
  user: string;
  password: string;
}

export const SERVERS: Record<'postgres' | 'mysql', Server>;

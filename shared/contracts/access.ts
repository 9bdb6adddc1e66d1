/** Types of `/switchboard/application-passwords`; docs/management-api.md#permissions. */

/** Times are ISO 8601 with an explicit offset. */
export interface ApplicationPassword {
  id: number;
  /** Its purpose, in its owner's words. */
  name: string;
  created_at: string;
  /** To the minute; null when it was never used. */
  last_used_at: string | null;
}

/** `GET /switchboard/application-passwords`: the caller's own, newest first. */
export interface ApplicationPasswordList {
  data: ApplicationPassword[];
}

export interface ApplicationPasswordInput {
  /** 1 to 100 characters. */
  name: string;
}

/** `POST /switchboard/application-passwords`, 201. */
export interface CreatedApplicationPassword {
  data: {
    id: number;
    name: string;
    /** Shown this once. Its spaces may be left out when it is used. */
    password: string;
  };
}

/** `DELETE /switchboard/application-passwords/:id`: what was revoked. */
export interface RevokedApplicationPassword {
  data: ApplicationPassword;
}

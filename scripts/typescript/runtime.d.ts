/** A refusal of the service. Branch on `code`; the message is for people. */
export declare class PostroomError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: { field: string; message: string }[];
  readonly retryAfter: number | null;
}

export interface Options {
  tenant?: string;
  fetch?: typeof fetch;
}

export interface RequestOptions {
  signal?: AbortSignal;
}

export interface StreamEvent {
  event: string;
  data: any;
}

/** An answer whose fields the document does not tell. */
export interface Answer {
  status: string;
  data: any;
  has_more?: boolean;
  next_cursor?: string | null;
}

// Package contract holds what orchestrators see of trainwright: the step_handoff that a skill tool takes, the
// execution_result it returns, and the JSON files a run leaves behind, with their field names, enums and file names.
//
// Decoding is forgiving, because callers are language models: Decode reads JSON or YAML text, takes a lone string for
// a list, a number sent as a string, null for absent, and keeps fields it does not know. Writing is strict: struct field
// order, unknown fields sorted after the known ones, no HTML escaping, lists never null. Whatever can't be used is told
// as findings with a stable code and the dotted path of the field.
//
// Finding codes: wrong_type, unknown_value, unknown_field, field_name_folded, assumed_field, misplaced_field, malformed_json,
// malformed_yaml, excessive_aliases, too_deep, duplicate_key, more_findings, unknown_argument, conflicting_argument,
// out_of_range, nothing_to_do.
package contract

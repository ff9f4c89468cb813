import CRUDPlacement

/// What an administrator may ask of the configuration that is in force.
enum ReloadRequest: Sendable {
    /// To read it again.
    case reload(Plan.Options)
    /// To tell what that would change.
    case dryRun(Plan.Options)
}

import CRUDConfiguration
import CRUDPlacement

/// What an administrator may ask of the configuration that is in force.
enum ReloadRequest: Sendable {
    /// To read it again.
    case reload(Plan.Options)
    /// To tell what that would change.
    case dryRun(Plan.Options)
    /// To list its settings.
    case settings
    /// To log this much until it is read again.
    case logLevel(Configuration.LogLevel)
}

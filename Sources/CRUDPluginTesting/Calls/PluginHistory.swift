import CRUDPluginABI

/// What a collection remembers of removals.
package struct PluginHistory: Equatable, Sendable {
    package let identity: UInt64
    package let forgotten: UInt64
    package let trimmed: UInt64
    /// Up to where changes can be read, of a reader's call.
    package let end: UInt64
    /// The least number of a change that is still to come, of a reader's call.
    package let next: UInt64

    init(_ history: crudd_history) {
        identity = history.identity
        forgotten = history.forgotten
        trimmed = history.trimmed
        end = history.end
        next = history.next
    }
}

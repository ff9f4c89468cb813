/// Versions of the wire protocol.
package enum ProtocolVersion {
    /// The one that this code speaks.
    package static let current = 1
}

/// Versions of the wire protocol.
package enum ProtocolVersion {
    /// The version that this code implements.
    package static let current = 1
}

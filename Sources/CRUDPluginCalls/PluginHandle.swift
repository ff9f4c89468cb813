/// A handle that a plugin has made. Who may use it when is said where it is kept.
package struct PluginHandle: @unchecked Sendable {
    // @unchecked: an address; the host follows the contract's rules on threads.
    package let pointer: OpaquePointer

    package init(pointer: OpaquePointer) {
        self.pointer = pointer
    }
}

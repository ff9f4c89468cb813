public import CRUDPluginABI
import CRUDPluginKit

// swift-format-ignore: AlwaysUseLowerCamelCase
// The name is the contract's.
@c @implementation
public func crudd_plugin_entry() -> UnsafePointer<crudd_plugin>? {
    PluginTable.export(PostgreSQLBackend.self)
}

public import CRUDPluginABI
import CRUDPluginKit

// The name is the plugin contract's.
// swift-format-ignore: AlwaysUseLowerCamelCase
@c @implementation
public func crudd_plugin_entry() -> UnsafePointer<crudd_plugin>? {
    PluginTable.export(MemoryBackend.self)
}

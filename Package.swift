// swift-tools-version: 6.3
import PackageDescription

/// Whether warnings are errors in our own targets, dependencies left alone. `make check` asks for it; a build by a user
/// does not, so that a newer compiler with new warnings still builds this package.
let isStrict = Context.environment["CRUDD_STRICT"] == "1"

let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (isStrict ? [.treatAllWarnings(as: .error)] : [])

let cSettings: [CSetting] = isStrict ? [.treatAllWarnings(as: .error)] : []

/// A module of our own under `Sources`, with the settings that all of them share.
func module(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

/// An executable under `Sources`.
func program(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .executableTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

/// A storage adapter under `Plugins` (SwiftPM keeps that folder for build plugins, hence the explicit path).
func adapter(_ name: String, _ folder: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(
        name: name, dependencies: ["CRUDPluginKit"] + dependencies, path: "Plugins/\(folder)", exclude: ["README.md"],
        swiftSettings: settings)
}

/// A test target under `Tests`.
func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPOSIX: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
    name: "crudd",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "CRUDClient", targets: ["CRUDClient"]),
        .library(name: "CRUDInMemory", targets: ["CRUDInMemory"]),
        .library(name: "CRUDPluginABI", targets: ["CRUDPluginABI"]),
        .library(name: "CRUDPluginKit", targets: ["CRUDPluginKit"]),
        .library(name: "filesystem", type: .dynamic, targets: ["FileSystemPlugin"]),
        .library(name: "memory", type: .dynamic, targets: ["MemoryPlugin"]),
        .library(name: "sqlite", type: .dynamic, targets: ["SQLitePlugin"]),
        .library(name: "userdefaults", type: .dynamic, targets: ["UserDefaultsPlugin"]),
        .executable(name: "crudd", targets: ["crudd"]),
        .executable(name: "crudd-plugin-host", targets: ["crudd-plugin-host"]),
        .executable(name: "crudctl", targets: ["crudctl"]),
        .executable(name: "demo-app", targets: ["demo-app"]),
        .executable(name: "crudd-bench", targets: ["crudd-bench"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
    ],
    targets: [
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .target(name: "CLinux", cSettings: cSettings),
        .target(name: "CRUDPluginABI", exclude: ["README.md", "CHILD-PROTOCOL.md"], cSettings: cSettings),

        module("CRUDDigest"),
        module("CRUDJSON"),
        module("CRUDModel", ["CRUDJSON"]),
        module("CRUDWire", ["CRUDJSON", "CRUDModel"], exclude: ["PROTOCOL.md"]),
        module("CRUDClient", ["CRUDJSON", "CRUDModel", "CRUDWire", nio, nioPOSIX]),
        module("CRUDInMemory", ["CRUDJSON", "CRUDModel", "CRUDClient"]),
        module("CRUDPluginKit", ["CRUDJSON", "CRUDModel", "CRUDPluginABI"]),
        module("CRUDEventLoop", ["CLinux"]),
        module(
            "CRUDPluginHost",
            ["CRUDDigest", "CRUDEventLoop", "CRUDJSON", "CRUDModel", "CRUDPluginABI", "CLinux", logging]),
        module("CRUDPluginTesting", ["CRUDJSON", "CRUDModel", "CRUDPluginABI", "CRUDPluginHost", logging]),
        module(
            "CRUDCore",
            ["CRUDDigest", "CRUDJSON", "CRUDModel", "CRUDConfiguration", "CRUDPluginHost", "CLinux", logging]),
        module("CRUDConfiguration", ["CRUDJSON", "CRUDModel", "CYAML"]),
        module(
            "CRUDServer",
            [
                "CRUDWire", "CRUDCore", "CRUDEventLoop", "CRUDConfiguration", "CRUDPluginHost", "CRUDModel", "CRUDJSON",
                "CLinux", logging,
            ]),

        program("crudd", ["CRUDServer", "CRUDConfiguration", "CRUDModel"]),
        program(
            "crudd-plugin-host",
            [
                "CRUDPluginHost", "CRUDPluginTesting", "CRUDConfiguration", "CRUDJSON", "CRUDModel", "CRUDPluginABI",
                "CLinux", logging,
            ]),
        program("crudctl", ["CRUDClient", "CRUDJSON", "CRUDModel", "CRUDWire", argumentParser]),
        program("demo-app", ["CRUDClient"], exclude: ["run"]),
        program("crudd-bench", ["CLinux", argumentParser], exclude: ["README.md", "run"]),

        adapter("FileSystemPlugin", "FileSystem", ["CLinux", "CRUDDigest", "CRUDModel", "CRUDPluginABI"]),
        adapter("MemoryPlugin", "Memory", ["CRUDPluginABI"]),
        adapter("SQLitePlugin", "SQLite", ["CSQLite", "CRUDJSON", "CRUDModel", "CRUDPluginABI"]),
        adapter("UserDefaultsPlugin", "UserDefaults", ["CLinux", "CRUDDigest", "CRUDModel", "CRUDPluginABI"]),

        .target(
            name: "CRUDTestSupport", dependencies: ["CLinux"], path: "Tests/CRUDTestSupport", swiftSettings: settings),
        .target(
            name: "PluginTestSupport", dependencies: ["CRUDPluginABI", "CRUDPluginTesting", "CRUDTestSupport"],
            path: "Tests/PluginTestSupport", swiftSettings: settings),
        tests("CRUDDigestTests", ["CRUDDigest", "CRUDTestSupport"]),
        tests("CRUDJSONTests", ["CRUDJSON"]),
        tests("CRUDModelTests", ["CRUDModel", "CRUDJSON", "CRUDTestSupport"]),
        tests("CRUDWireTests", ["CRUDWire", "CRUDJSON", "CRUDModel"]),
        tests("CRUDConfigurationTests", ["CRUDConfiguration", "CRUDJSON", "CRUDModel"]),
        tests("CRUDEventLoopTests", ["CRUDEventLoop", "CLinux"]),
        tests(
            "CRUDPluginHostTests",
            ["CRUDDigest", "CRUDPluginHost", "CRUDPluginABI", "CRUDModel", "CRUDTestSupport", "CLinux", logging]),
        tests(
            "CRUDCoreTests",
            ["CRUDCore", "CRUDConfiguration", "CRUDJSON", "CRUDModel", "CRUDPluginHost", "CRUDTestSupport", logging]),
        .target(
            name: "ScriptedDaemon", dependencies: ["CRUDTestSupport", "CLinux"], path: "Tests/ScriptedDaemon",
            swiftSettings: settings),
        tests("CRUDClientTests", ["CRUDClient", "CRUDModel", "CRUDTestSupport", "ScriptedDaemon", nio]),
        tests("CRUDInMemoryTests", ["CRUDInMemory", "CRUDClient", "CRUDModel", "CRUDTestSupport"]),
        tests("CRUDPluginTestingTests", ["CRUDPluginTesting", "PluginTestSupport", "CRUDTestSupport"]),
        tests("CRUDCtlTests", ["crudctl", "CRUDModel", "CRUDTestSupport", "ScriptedDaemon"]),
        tests(
            "FileSystemPluginTests",
            ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI", "CRUDTestSupport", "CRUDDigest", "CLinux"]),
        tests("MemoryPluginTests", ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI"]),
        tests("SQLitePluginTests", ["CRUDTestSupport", "CRUDPluginABI", "CRUDJSON", "CRUDModel", "CSQLite"]),
        tests("SystemTests", ["CRUDTestSupport"]),
        tests("TypeCheckTests", ["CRUDInMemory", "CRUDTestSupport"]),
        tests(
            "UserDefaultsPluginTests", ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI", "CRUDTestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)

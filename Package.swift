// swift-tools-version: 6.3
import PackageDescription

/// Whether warnings are errors in our own targets, dependencies left alone. `make check` asks for it; a build by a user
/// does not, so that a newer compiler with new warnings still builds this package.
let isStrict = Context.environment["CRUDD_STRICT"] == "1"

/// Whether the package is what the tests without a daemon need, and nothing else: `make test-quick` asks for it.
let isQuick = Context.environment["CRUDD_QUICK"] == "1"

/// Has them built in two thirds of the time: each module at once, and without what a debugger needs.
let quickly: [SwiftSetting] =
    isQuick ? [.unsafeFlags(["-wmo", "-num-threads", "2", "-disable-batch-mode", "-gnone"])] : []

let testSettings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (isStrict ? [.treatAllWarnings(as: .error)] : []) + quickly

/// Whether a debug build optimises all that tests execute a lot of, and leaves the tests themselves as they are: the
/// Makefile asks for it, since the tests take half the time then. A package that depends on this one by a version is
/// refused with such flags, and so must not have the variable in its environment.
let isOptimised = Context.environment["CRUDD_OPTIMISED"] == "1"

let optimised: SwiftSetting = .unsafeFlags(
    ["-O", "-wmo", "-num-threads", "2", "-disable-batch-mode"], .when(configuration: .debug))
let settings = testSettings + (isOptimised ? [optimised] : [])

/// Whether the fuzzer is built, which needs libFuzzer: `Tests/Fuzz/run` asks for it.
let isFuzzed = Context.environment["CRUDD_FUZZ"] == "1"

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
func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: testSettings)
}

let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPOSIX: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")

/// A package that depends on this one without the trait resolves neither of these: no library that it can use has them.
let onlyForDaemon: TargetDependencyCondition? = .when(traits: ["Daemon"])
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log", condition: onlyForDaemon)
let clientLogging: Target.Dependency = .product(
    name: "Logging", package: "swift-log", condition: .when(traits: ["Logging"]))
let serviceLifecycle: Target.Dependency = .product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"]))
let tracing: Target.Dependency = .product(
    name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"]))
let argumentParser: Target.Dependency = .product(
    name: "ArgumentParser", package: "swift-argument-parser", condition: onlyForDaemon)

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
        .library(name: "postgresql", type: .dynamic, targets: ["PostgreSQLPlugin"]),
        .library(name: "sqlite", type: .dynamic, targets: ["SQLitePlugin"]),
        .library(name: "userdefaults", type: .dynamic, targets: ["UserDefaultsPlugin"]),
        .executable(name: "crudd", targets: ["crudd"]),
        .executable(name: "crudd-plugin-check", targets: ["crudd-plugin-check"]),
        .executable(name: "crudd-plugin-host", targets: ["crudd-plugin-host"]),
        .executable(name: "crudctl", targets: ["crudctl"]),
    ],
    traits: [
        .trait(
            name: "Daemon",
            description: "What the daemon and crudctl depend on; a package that uses a library only turns it off."),
        .trait(name: "Logging", description: "CRUDClient.Options has a logger of swift-log."),
        .trait(name: "ServiceLifecycle", description: "CRUDClient is a Service of swift-service-lifecycle."),
        .trait(name: "Tracing", description: "Each call of a CRUDClient has a span of swift-distributed-tracing."),
        .default(enabledTraits: ["Daemon"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.3"),
    ],
    targets: [
        // Without pkgConfig: SwiftPM would warn packages that depend on this one of libraries that they do not use.
        .systemLibrary(name: "CPostgreSQL", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CYAML", providers: [.apt(["libyaml-dev"])]),
        .target(name: "CLinux", cSettings: cSettings),
        .target(name: "CRUDPluginABI", exclude: ["README.md", "CHILD-PROTOCOL.md"], cSettings: cSettings),

        module("CRUDJSON"),
        module("CRUDModel", ["CRUDJSON"]),
        module("CRUDQuery", ["CRUDJSON", "CRUDModel"]),
        module("CRUDFormats", ["CRUDJSON", "CRUDModel"]),
        module("CRUDHistogram"),
        module("CRUDWire", ["CRUDJSON", "CRUDModel"], exclude: ["PROTOCOL.md"]),
        module(
            "CRUDClient",
            ["CRUDJSON", "CRUDModel", "CRUDWire", nio, nioPOSIX, clientLogging, serviceLifecycle, tracing]),
        module("CRUDInMemory", ["CRUDJSON", "CRUDModel", "CRUDQuery", "CRUDClient"]),
        module("CRUDPluginKit", ["CRUDJSON", "CRUDModel", "CRUDPluginABI"]),
        module("CRUDPluginThreads", ["CLinux"]),
        module("CRUDRecordLog", ["CRUDPluginKit", "CLinux"]),
        module("CRUDThreads", ["CLinux"]),
        module("CRUDEventLoop", ["CRUDThreads", "CLinux"]),
        module(
            "CRUDPluginHost", ["CRUDThreads", "CRUDJSON", "CRUDModel", "CRUDPluginABI", "CLinux", logging]),
        module(
            "CRUDPluginCalls",
            ["CRUDPluginHost", "CRUDQuery", "CRUDFormats", "CRUDThreads", "CRUDJSON", "CRUDModel", "CRUDPluginABI"]),
        module("CRUDPluginTesting", ["CRUDJSON", "CRUDPluginABI", "CRUDPluginHost", "CRUDThreads"]),
        module(
            "CRUDStorage",
            [
                "CRUDPluginCalls", "CRUDPluginHost", "CRUDQuery", "CRUDFormats", "CRUDHistogram", "CRUDThreads",
                "CRUDJSON", "CRUDModel", "CRUDPluginABI", "CLinux", logging,
            ]),
        module(
            "CRUDPlacement", ["CRUDStorage", "CRUDThreads", "CRUDJSON", "CRUDModel", "CLinux", logging]),
        module("CRUDConfiguration", ["CRUDJSON", "CRUDModel", "CYAML"]),
        module(
            "CRUDServer",
            [
                "CRUDWire", "CRUDStorage", "CRUDPlacement", "CRUDEventLoop", "CRUDConfiguration", "CRUDFormats",
                "CRUDQuery", "CRUDHistogram", "CRUDPluginCalls", "CRUDPluginHost", "CRUDThreads", "CRUDModel",
                "CRUDJSON", "CLinux", logging,
            ]),

        program("crudd", ["CRUDServer", "CRUDConfiguration", "CRUDModel"]),
        program(
            "crudd-plugin-host",
            [
                "CRUDPluginCalls", "CRUDPluginHost", "CRUDQuery", "CRUDFormats", "CRUDThreads", "CRUDJSON", "CRUDModel",
                "CRUDPluginABI", "CLinux",
            ]),
        program(
            "crudd-plugin-check",
            ["CRUDPluginTesting", "CRUDPluginHost", "CRUDConfiguration", "CRUDThreads", "CRUDModel", logging]),
        program("crudctl", ["CRUDClient", "CRUDHistogram", "CRUDJSON", "CRUDModel", "CRUDWire", argumentParser]),
        // Without products: tools of this package, which packages that depend on it do not see.
        program("demo-app", ["CRUDClient"], exclude: ["run"]),
        .executableTarget(
            name: "crudd-bench", dependencies: ["CRUDHistogram", "CLinux", argumentParser], path: "Tests/Bench",
            exclude: ["README.md", "run", "backends", "servers.sh", "experiments.sh"], swiftSettings: settings),

        adapter("FileSystemPlugin", "FileSystem", ["CLinux", "CRUDPluginABI"]),
        adapter("MemoryPlugin", "Memory", ["CRUDRecordLog", "CRUDPluginABI"]),
        adapter("PostgreSQLPlugin", "PostgreSQL", ["CLinux", "CPostgreSQL", "CRUDPluginABI", "CRUDPluginThreads"]),
        adapter("SQLitePlugin", "SQLite", ["CSQLite", "CRUDPluginABI", "CRUDPluginThreads"]),
        adapter("UserDefaultsPlugin", "UserDefaults", ["CLinux", "CRUDPluginABI"]),

        .target(
            name: "CRUDTestSupport", dependencies: ["CLinux", "CRUDThreads", logging], path: "Tests/CRUDTestSupport",
            swiftSettings: settings),
        .target(
            name: "PluginTestSupport", dependencies: ["CRUDPluginABI", "CRUDPluginTesting", "CRUDTestSupport"],
            path: "Tests/PluginTestSupport", swiftSettings: settings),
        tests("CRUDJSONTests", ["CRUDJSON", "CRUDTestSupport"]),
        tests("CRUDModelTests", ["CRUDModel", "CRUDJSON", "CRUDTestSupport"]),
        tests("CRUDHistogramTests", ["CRUDHistogram"]),
        tests("CRUDWireTests", ["CRUDWire", "CRUDJSON", "CRUDModel"]),
        tests("CRUDConfigurationTests", ["CRUDConfiguration", "CRUDJSON", "CRUDModel", "CRUDTestSupport"]),
        tests("CRUDThreadsTests", ["CRUDThreads"]),
        tests("CRUDEventLoopTests", ["CRUDEventLoop", "CRUDThreads", "CLinux"]),
        tests("CRUDQueryTests", ["CRUDQuery", "CRUDModel", "CRUDJSON", "CRUDTestSupport"]),
        tests("CRUDFormatsTests", ["CRUDFormats", "CRUDModel", "CRUDJSON", "CRUDTestSupport"]),
        tests(
            "CRUDPluginHostTests",
            [
                "CRUDPluginHost", "CRUDPluginABI", "CRUDThreads", "CRUDModel", "CRUDTestSupport", "CLinux", logging,
            ]),
        tests(
            "CRUDStorageTests",
            [
                "CRUDStorage", "CRUDPlacement", "CRUDPluginCalls", "CRUDPluginHost", "CRUDQuery", "CRUDFormats",
                "CRUDThreads", "CRUDJSON", "CRUDModel", "CRUDPluginABI", "CRUDTestSupport", "CLinux", logging,
            ]),
        tests(
            "CRUDPlacementTests",
            ["CRUDPlacement", "CRUDStorage", "CRUDModel", "CRUDJSON", "CRUDTestSupport", logging]),
        tests(
            "CRUDServerTests",
            [
                "CRUDServer", "CRUDStorage", "CRUDPluginHost", "CRUDConfiguration", "CRUDEventLoop", "CRUDJSON",
                "CRUDModel", "CRUDTestSupport", logging,
            ]),
        .target(
            name: "ScriptedDaemon", dependencies: ["CRUDTestSupport", "CLinux"], path: "Tests/ScriptedDaemon",
            swiftSettings: settings),
        tests("CRUDClientTests", ["CRUDClient", "CRUDModel", "CRUDTestSupport", "CRUDWire", "ScriptedDaemon", nio]),
        tests(
            "CRUDInMemoryTests",
            [
                "CRUDInMemory", "CRUDClient", "CRUDServer", "CRUDPlacement", "CRUDStorage", "CRUDPluginHost",
                "CRUDConfiguration", "CRUDThreads", "CRUDModel", "CRUDTestSupport", logging,
            ]),
        tests("CRUDPluginKitTests", ["CRUDPluginABI", "CRUDPluginKit", "CRUDPluginTesting"]),
        tests(
            "CRUDRecordLogTests", ["CRUDRecordLog", "CRUDPluginKit", "CRUDPluginABI", "CRUDTestSupport", "CLinux"]),
        tests("CRUDPluginTestingTests", ["CRUDPluginTesting", "PluginTestSupport", "CRUDTestSupport"]),
        tests(
            "CRUDCtlTests", ["crudctl", "CRUDHistogram", "CRUDModel", "CRUDTestSupport", "ScriptedDaemon"],
            exclude: ["Golden"]),
        tests(
            "FileSystemPluginTests",
            ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI", "CRUDTestSupport", "CRUDModel", "CLinux"]),
        tests("MemoryPluginTests", ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI", "CRUDTestSupport"]),
        tests(
            "PostgreSQLPluginTests",
            ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI", "CRUDTestSupport", "CRUDThreads", "CLinux"]),
        tests("AdministratorTests", ["CRUDPlacement", "CRUDModel", "CRUDTestSupport", "CSQLite"]),
        tests("ClusterTests", ["CRUDTestSupport", "CRUDThreads"]),
        tests(
            "SQLitePluginTests",
            ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI", "CRUDTestSupport", "CSQLite"]),
        tests("SystemTests", ["CRUDTestSupport", "CRUDThreads"]),
        tests("TypeCheckTests", ["CRUDInMemory", "CRUDTestSupport"]),
        tests(
            "UserDefaultsPluginTests", ["PluginTestSupport", "CRUDPluginTesting", "CRUDPluginABI", "CRUDTestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)

if isQuick {
    var names: Set = [
        "CRUDJSONTests", "CRUDModelTests", "CRUDHistogramTests", "CRUDWireTests", "CRUDConfigurationTests",
        "CRUDThreadsTests",
        "CRUDEventLoopTests", "CRUDQueryTests", "CRUDFormatsTests", "CRUDPluginHostTests", "CRUDStorageTests",
        "CRUDPlacementTests", "CRUDServerTests", "CRUDPluginKitTests", "MemoryPlugin", "SQLitePlugin",
        "crudd-plugin-check", "crudd-plugin-host",
    ]
    var added = names
    while !added.isEmpty {
        let dependencies = package.targets.filter { added.contains($0.name) }.flatMap(\.dependencies)
        let needed = dependencies.compactMap { dependency -> String? in
            switch dependency {
            case .targetItem(let name, _), .byNameItem(let name, _): name
            case .productItem: nil
            @unknown default: nil
            }
        }
        added = Set(needed).subtracting(names)
        names.formUnion(added)
    }
    package.targets.removeAll { !names.contains($0.name) }
    package.products.removeAll { !["crudd-plugin-check", "crudd-plugin-host", "memory", "sqlite"].contains($0.name) }
}

if isFuzzed {
    package.targets.append(
        .executableTarget(
            name: "crudd-fuzz",
            dependencies: [
                "CRUDWire", "CRUDQuery", "CRUDFormats", "CRUDConfiguration", "CRUDPluginHost", "CRUDModel", "CRUDJSON",
                "CRUDPluginABI",
            ], path: "Tests/Fuzz", exclude: ["corpus", "run"], swiftSettings: settings))
}

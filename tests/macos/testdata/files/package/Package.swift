// swift-tools-version:5.5
import PackageDescription
let package = Package(name: "hello", targets: [.executableTarget(name: "hello")])

# Filled in by .ci/release of sandbox-sidecar @VERSION@:
# nix-env -i -f sandbox-sidecar.nix
{ pkgs ? import <nixpkgs> { } }:

let
  archives = {
    x86_64-linux = { target = "linux_amd64"; sha256 = "@SHA256_linux_amd64@"; };
    aarch64-linux = { target = "linux_arm64"; sha256 = "@SHA256_linux_arm64@"; };
    x86_64-darwin = { target = "darwin_amd64"; sha256 = "@SHA256_darwin_amd64@"; };
    aarch64-darwin = { target = "darwin_arm64"; sha256 = "@SHA256_darwin_arm64@"; };
  };
  system = pkgs.stdenv.hostPlatform.system;
  archive = archives.${system} or (throw "sandbox-sidecar: no archive for ${system}");
in
pkgs.stdenvNoCC.mkDerivation {
  pname = "sandbox-sidecar";
  version = "@NUMBER@";
  src = pkgs.fetchurl {
    url = "@URL@/sandbox-sidecar_@VERSION@_${archive.target}.tar.gz";
    inherit (archive) sha256;
  };
  dontConfigure = true;
  dontBuild = true;
  installPhase = ''
    runHook preInstall
    install -Dm755 -t $out/bin sandbox-sidecar sandbox-sidecar-mcp sandbox-sidecar-credentials
    cp -r share $out/share
    runHook postInstall
  '';
  meta = {
    description = "Confines editors' terminals and agents' tools";
    homepage = "https://github.com/sandbox-sidecar/sandbox-sidecar";
    license = pkgs.lib.licenses.asl20;
    mainProgram = "sandbox-sidecar";
    platforms = builtins.attrNames archives;
  };
}

# frozen_string_literal: true

module Bench
  # Programs that may be missing on the machine, installed with apt as in bin/, if we have the right to.
  module Packages
    class Missing < StandardError; end

    INSTALL = File.expand_path("../../bin/lib/install.sh", __dir__)
    # Debian's nginx is not on every user's PATH.
    FOLDERS = [*ENV.fetch("PATH", "").split(File::PATH_SEPARATOR), "/usr/sbin", "/usr/local/sbin"].freeze

    # @param name [String] of an executable
    # @param packages [Array<String>] that contain it
    # @return [String] its path
    # @raise [Missing] when it cannot be installed
    def self.executable(name, *packages)
      find(name) || (install(packages) && find(name)) || raise(Missing, "no #{name} (#{packages.join(" ")})")
    end

    def self.install(packages)
      system("bash", "-c", '. "$0" && install_packages "$@"', INSTALL, *packages, in: File::NULL)
    end

    def self.find(name)
      FOLDERS.map { |folder| File.join(folder, name) }.find { |path| File.file?(path) && File.executable?(path) }
    end
  end
end

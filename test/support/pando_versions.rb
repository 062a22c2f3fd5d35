# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "support/checkout"

module Support
  # Copies of Pando's own code with different versions, and a link `current` to one of them: what an upgrade of the gem
  # looks like to a running server.
  class PandoVersions
    # @return [String] the folder that contains them
    attr_reader :root

    def initialize
      @root = Dir.mktmpdir("pando-versions")
    end

    # The code that a server is started with.
    def current = File.join(root, "current")

    # @yieldparam folder [String] of the copy, which the block changes
    # @return [self]
    def add(version)
      folder = File.join(root, version)
      FileUtils.mkdir_p(folder)
      FileUtils.cp_r(%w[lib exe].map { |name| File.join(Checkout::ROOT, name) }, folder)
      edit(version, "lib/pando/version.rb") { |text| text.sub(/VERSION = ".*"/, "VERSION = #{version.inspect}") }
      self
    end

    # @yieldparam text [String] of the file @yieldreturn [String] its new text
    def edit(version, file)
      path = File.join(root, version, file)
      before = File.read(path)
      after = yield(before)
      raise ArgumentError, "#{file} is as it was" if after == before

      File.write(path, after)
      self
    end

    # Switches atomically, as deployments do.
    def link(version)
      File.symlink(version, File.join(root, "next"))
      File.rename(File.join(root, "next"), current)
      self
    end

    def remove = FileUtils.rm_rf(root)
  end
end

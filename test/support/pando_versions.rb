# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "support/checkout"

module Support
  # Copies of Pando's own code, each of another version, and a link `current` to one of them: as an upgrade of a
  # gem looks to a server that runs.
  class PandoVersions
    # @return [String] the folder with all of it
    attr_reader :root

    def initialize
      @root = Dir.mktmpdir("pando-versions")
    end

    # What a server is started with.
    def current = File.join(root, "current")

    # @yieldparam folder [String] of the copy, to be changed
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

    # As deployments do it: atomically.
    def link(version)
      File.symlink(version, File.join(root, "next"))
      File.rename(File.join(root, "next"), current)
      self
    end

    def remove = FileUtils.rm_rf(root)
  end
end

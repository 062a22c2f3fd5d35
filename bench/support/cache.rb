# frozen_string_literal: true

require "fileutils"

module Bench
  # The project's folder in the user's cache, for what benchmarks and tests make only once: gems, apps, programs.
  module Cache
    # @param names [Array<String>] within it
    # @return [String] absolute path
    def self.path(*names)
      File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "pando", *names)
    end

    # Runs the block in one process at a time; later ones wait.
    #
    # @param file [String] to lock; it is made, and stays
    def self.locked(file)
      FileUtils.mkdir_p(File.dirname(file))
      File.open(file, File::CREAT | File::RDWR) do |lock|
        lock.flock(File::LOCK_EX)
        yield
      end
    end
  end
end

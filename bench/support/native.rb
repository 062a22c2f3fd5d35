# frozen_string_literal: true

require "digest"
require "fileutils"
require "support/cache"
require "support/packages"

module Bench
  # The load generators in bench/native, compiled once per version of their sources into the user's cache folder.
  class Native
    class Failed < StandardError; end

    SOURCES = File.expand_path("../native", __dir__)
    FLAGS = %w[-std=c11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE].freeze

    # @param name [String] of a program: its source is bench/native/<name>.c
    # @return [String] path of the executable
    # @raise [Failed] with the compiler's message
    def self.program(name) = new(name).program

    def initialize(name)
      @name = name
    end

    def program
      compile unless File.executable?(path)
      path
    end

    private

    def path = File.join(folder, "#{@name}-#{digest}")
    def source = File.join(SOURCES, "#{@name}.c")
    def digest = Digest::SHA256.hexdigest([*FLAGS, *inputs.map { |file| File.read(file) }].join("\0"))[0, 16]
    def inputs = [source, *Dir[File.join(SOURCES, "*.h")]]

    def folder = Cache.path("bench")

    # Renamed into place, so that concurrent compilations never see an incomplete file.
    def compile
      FileUtils.mkdir_p(folder)
      fresh = "#{path}.#{Process.pid}"
      output = IO.popen([compiler, *FLAGS, "-o", fresh, source, "-lm"], err: %i[child out], &:read)
      raise Failed, "#{@name} does not compile:\n#{output}" unless Process.last_status.success?

      File.rename(fresh, path)
    end

    def compiler = Packages.executable("cc", "gcc", "libc6-dev")
  end
end

# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"

module Support
  # A native library for a test, compiled once per run from source text.
  module SharedLibrary
    FLAGS = %w[-std=gnu11 -D_GNU_SOURCE -shared -fPIC -pthread -Wall -Wextra -Wno-unused-parameter -Werror].freeze

    # @param file [String] file name, "libsomething.so"
    # @param source [String] C code
    # @return [String] path
    def self.path(file, source)
      target = File.join(folder, file)
      return target if File.file?(target)

      File.write("#{target}.c", source)
      compiler = ENV.fetch("CC", RbConfig::CONFIG["CC"]).split
      system(*compiler, *FLAGS, "#{target}.c", "-o", target) or raise("#{file} does not compile")
      target
    end

    def self.folder
      @folder ||= Dir.mktmpdir("pando-library").tap do |path|
        owner = Process.pid
        at_exit { FileUtils.rm_rf(path) if Process.pid == owner }
      end
    end
    private_class_method :folder
  end
end

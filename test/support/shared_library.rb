# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"

module Support
  # A native library for a test, compiled once per run from source text.
  module SharedLibrary
    FLAGS = %w[-std=gnu11 -D_GNU_SOURCE -shared -fPIC -pthread -Wall -Wextra -Wno-unused-parameter -Werror].freeze

    @lock = Mutex.new

    # @param file [String] file name, "libsomething.so"
    # @param source [String] C code
    # @return [String] path
    def self.path(file, source)
      @lock.synchronize do
        target = File.join(folder, file)
        compile(target, source) unless File.file?(target)
        target
      end
    end

    def self.compile(target, source)
      File.write("#{target}.c", source)
      compiler = ENV.fetch("CC", RbConfig::CONFIG["CC"]).split
      system(*compiler, *FLAGS, "#{target}.c", "-o", target) or raise("#{File.basename(target)} does not compile")
    end

    def self.folder
      @folder ||= Dir.mktmpdir("pando-library").tap do |path|
        owner = Process.pid
        at_exit { FileUtils.rm_rf(path) if Process.pid == owner }
      end
    end
    private_class_method :compile, :folder
  end
end

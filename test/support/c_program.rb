# frozen_string_literal: true

require "digest/sha2" # not as it is used: tests compile in several threads at once
require "fileutils"
require "rbconfig"
require "tmpdir"
require "support/checkout"

module Support
  # A C program for a test, compiled from the checkout's sources. Programs and their objects are kept in tmp/c, by the
  # digest of all that they are made of, because most of the sources are in several programs.
  class CProgram
    ADDRESS = %w[-fsanitize=address,undefined -fno-sanitize-recover=all].freeze
    THREAD = %w[-fsanitize=thread].freeze
    FLAGS = %w[-std=gnu11 -D_GNU_SOURCE -g -O1 -pthread -Wall -Wextra -Werror].freeze
    HEADERS = "{ext/pando,test/c}/**/*.h"

    @programs = {}

    class << self
      # @param main [String] of test/c, without its suffix
      # @param sources [Array<String>] to link with, as paths or patterns below ext/pando
      # @param sanitizers [Array<String>] left out if the compiler does not have them
      # @return [String] path of the program
      # @raise [RuntimeError] if it does not compile
      def path(main, sources, sanitizers: ADDRESS)
        @programs.fetch([main, sanitizers]) do |key|
          @programs[key] = build(main, sources, supported?(sanitizers) ? sanitizers : [])
        end || raise("#{main} does not compile")
      end

      # @param main [String] of test/c, without its suffix
      # @return [String] path of a shared library
      # @raise [RuntimeError] if it does not compile
      def library(main)
        @programs[[main, :library]] ||= made(["test/c/#{main}.c"], %w[-shared -fPIC], ".so") ||
                                        raise("#{main} does not compile")
      end

      # @return [Boolean] whether programs can be compiled with them, and run
      def supported?(sanitizers)
        @supported ||= {}
        @supported.fetch(sanitizers) { @supported[sanitizers] = runs_empty?(sanitizers) }
      end

      private

      def build(main, sources, sanitizers)
        files = sources.flat_map { |source| Dir["ext/pando/#{source}", base: Checkout::ROOT].sort }
        objects = ["test/c/#{main}.c", *files].map { |file| made([file], [*sanitizers, "-c"], ".o") }
        made(objects, sanitizers, "") if objects.all?
      end

      # @param files [Array<String>] as paths, or relative to the checkout
      # @return [String, nil] nil if it does not compile
      def made(files, flags, suffix)
        target = "tmp/c/#{File.basename(files.first, ".*")}-#{digest(files, flags)}#{suffix}"
        return Checkout.path(target) if File.exist?(Checkout.path(target))

        FileUtils.mkdir_p(Checkout.path("tmp/c"))
        own = "#{target}.#{Process.pid}.#{Thread.current.object_id}"
        compile(files, flags, own, chdir: Checkout::ROOT) or return
        File.rename(Checkout.path(own), Checkout.path(target)) # several tests may compile it at once
        Checkout.path(target)
      end

      # Each header may be among those that a source includes.
      def digest(files, flags)
        @headers ||= hashes(Dir[HEADERS, base: Checkout::ROOT].sort)
        @version ||= IO.popen([*compiler, "-dumpfullversion"], &:read)
        Digest::SHA256.hexdigest([@version, FLAGS, flags, files, hashes(files), @headers].inspect)[0, 16]
      end

      def hashes(files) = files.map { |file| Digest::SHA256.file(File.expand_path(file, Checkout::ROOT)).hexdigest }
      def compiler = ENV.fetch("CC", RbConfig::CONFIG["CC"]).split

      def compile(files, flags, target, **options)
        system(*compiler, *FLAGS, *flags, "-I", Checkout.path("ext/pando"), *files, "-o", target, **options) && target
      end

      def runs_empty?(sanitizers)
        return true if sanitizers.empty?

        Dir.mktmpdir do |folder|
          source = File.join(folder, "empty.c")
          File.write(source, "int main(void) { return 0; }\n")
          program = compile([source], sanitizers, File.join(folder, "empty"), err: File::NULL)
          program ? system(program, err: File::NULL) : false
        end
      end
    end
  end
end

# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"
require "support/checkout"

module Support
  # A C program for a test, compiled once per run from the checkout's sources.
  class CProgram
    ADDRESS = %w[-fsanitize=address,undefined -fno-sanitize-recover=all].freeze
    THREAD = %w[-fsanitize=thread].freeze
    FLAGS = %w[-std=gnu11 -D_GNU_SOURCE -g -O1 -pthread -Wall -Wextra -Werror].freeze

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
        @programs[[main, :library]] ||=
          compile([Checkout.path("test/c/#{main}.c")], %w[-shared -fPIC], File.join(folder, "#{main}.so")) ||
          raise("#{main} does not compile")
      end

      # @return [Boolean] whether programs can be compiled with them, and run
      def supported?(sanitizers)
        @supported ||= {}
        @supported.fetch(sanitizers) { @supported[sanitizers] = runs_empty?(sanitizers) }
      end

      private

      def build(main, sources, sanitizers)
        files = sources.flat_map { |source| Dir[Checkout.path("ext/pando", source)] }
        target = File.join(folder, "#{main}-#{@programs.size}")
        compile([Checkout.path("test/c/#{main}.c"), *files], sanitizers, target)
      end

      def compile(files, sanitizers, target, **options)
        system(ENV.fetch("CC", RbConfig::CONFIG["CC"]), *FLAGS, *sanitizers, "-I", Checkout.path("ext/pando"), *files,
               "-o", target, **options) && target
      end

      def runs_empty?(sanitizers)
        return true if sanitizers.empty?

        source = File.join(folder, "empty.c")
        File.write(source, "int main(void) { return 0; }\n")
        program = compile([source], sanitizers, File.join(folder, "empty"), err: File::NULL)
        program ? system(program, err: File::NULL) : false
      end

      def folder
        @folder ||= Dir.mktmpdir.tap do |path|
          owner = Process.pid
          at_exit { FileUtils.rm_rf(path) if Process.pid == owner }
        end
      end
    end
  end
end

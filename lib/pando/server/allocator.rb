# frozen_string_literal: true

require "etc"
require "pando/errors"
require "pando/sys"

module Pando
  class Server
    # Decides in the monitor, before each cold boot, which malloc the application gets. A cold boot is an exec, so it
    # can load jemalloc before the C library. Then forked processes keep more memory shared (docs/sharing.md).
    class Allocator
      PRELOAD = "LD_PRELOAD"
      CONF = "MALLOC_CONF"
      # No background thread, because it would not live in a child. No huge pages, because one write would make a whole
      # one private to a child. Two arenas, not four for each CPU: Ruby's threads allocate one at a time, and what many
      # threads spread over many arenas fills fewer pages in few.
      DEFAULTS = "background_thread:false,thp:never,narenas:2"
      # Bytes. jemalloc does not work with pages larger than those that it was built for.
      PAGE = 4096
      PACKAGE = "Debian and Ubuntu have it as libjemalloc2, Fedora as jemalloc"

      # @param library [Jemalloc, nil] the newest there is
      # @param loaded [String, nil] the version that this process has loaded itself
      def initialize(wanted, environment: ENV.to_h, library: Jemalloc.newest, loaded: Sys.jemalloc,
                     page: Etc.sysconf(Etc::SC_PAGESIZE))
        @wanted = wanted
        @environment = environment
        @library = library
        @loaded = loaded
        @page = page
      end

      # @return [Hash{String => String}] that a cold boot needs
      # @raise [BootError] jemalloc is wanted and cannot be had
      def variables
        raise BootError, "allocator :jemalloc, but #{obstacle}" if @wanted == :jemalloc && !@loaded && obstacle
        return {} if @wanted == :glibc
        return Jemalloc.safe?(@loaded) ? options : {} if @loaded
        return {} if obstacle

        { PRELOAD => [@library.path, *preloaded].join(":"), **options }
      end

      # @return [String, nil] why jemalloc cannot be loaded
      def obstacle
        if !@library then "there is no libjemalloc.so.2 for this Ruby (#{PACKAGE})"
        elsif !@library.safe?
          "#{@library.path} is version #{@library.version || "unknown"}: before 5.3 a fork may hang"
        elsif @wanted == :auto then doubt
        end
      end

      private

      # What the user says comes last, and wins.
      def options = { CONF => [DEFAULTS, @environment[CONF].to_s].reject(&:empty?).join(",") }

      def doubt
        return "LD_PRELOAD has #{preloaded} already" if preloaded

        "this kernel's pages have #{@page} bytes: allocator :jemalloc, if it was built for that" if @page != PAGE
      end

      def preloaded
        text = @environment[PRELOAD].to_s.strip
        text unless text.empty?
      end
    end

    # A jemalloc in a file, which is read without loading it. Made by Allocator.
    class Jemalloc
      FOLDERS = %w[/usr/local/lib /usr/lib/*-linux-gnu* /usr/lib64 /usr/lib].freeze
      FILE = "libjemalloc.so.2"
      # Its soname is the same since 2010; this is the text that mallctl "version" returns.
      VERSION = /(?<![\d.])(\d{1,2})\.(\d{1,3})\.(\d{1,3})-\d+-g\h{8,40}\0/n
      # Before 5.3 a child may inherit a lock that a thread holds which it does not have.
      SAFE = [5, 3].freeze
      LARGEST = 32 * (1024**2)
      # Of an ELF file (elf(5)): word size and byte order, and behind them the kind of CPU.
      KIND = 4..5
      MACHINE = 18..19

      class << self
        # @return [Jemalloc, nil] the newest that this Ruby could load
        def newest(folders = FOLDERS)
          return if musl?

          found = folders.flat_map { |folder| Dir.glob(File.join(folder, FILE)) }.uniq { |path| File.realpath(path) }
          found.map { |path| new(path) }.select(&:ours?).max_by(&:number)
        rescue SystemCallError
          nil
        end

        # @param version [String] "5.3.0", or with more behind it
        def safe?(version) = (version.split(".").first(2).map(&:to_i) <=> SAFE) >= 0

        # @return [Boolean] whether the C library is musl, whose malloc cannot be replaced
        def musl? = RUBY_PLATFORM.include?("musl")
      end

      attr_reader :path

      def initialize(path)
        @path = path
      end

      # @return [String, nil] "5.3.0"
      def version = (number.join(".") if number.any?)

      def safe? = number.any? && Jemalloc.safe?(version)

      # @return [Boolean] whether it is for the same kind of process as this one
      def ours? = head.start_with?("\x7fELF".b) && kind(head) == kind(File.binread("/proc/self/exe", 64))

      # @return [Array<Integer>] empty: not known
      def number = @number ||= File.binread(path, LARGEST)[VERSION].to_s.split("-").first.to_s.split(".").map(&:to_i)

      private

      def head = @head ||= File.binread(path, 64).to_s
      def kind(head) = [head[KIND], head[MACHINE]]
    end
  end
end

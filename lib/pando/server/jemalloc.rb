# frozen_string_literal: true

module Pando
  class Server
    # A jemalloc in a file, looked at without loading it.
    #
    # @api private
    class Jemalloc
      FOLDERS = %w[/usr/local/lib /usr/lib/*-linux-gnu* /usr/lib64 /usr/lib].freeze
      FILE = "libjemalloc.so.2"
      # Its soname is the same since 2010; this is what it answers itself with when asked (mallctl "version").
      VERSION = /(?<![\d.])(\d{1,2})\.(\d{1,3})\.(\d{1,3})-\d+-g\h{8,40}\0/n
      # Before 5.3 a child may find a lock held by a thread that it does not have.
      SAFE = [5, 3].freeze
      LARGEST = 32 * (1024**2)
      # Of an ELF file (elf(5)): word size and byte order, and behind them the kind of CPU.
      KIND = 4..5
      MACHINE = 18..19

      class << self
        # @param folders [Array<String>] patterns
        # @return [Jemalloc, nil] the newest that this Ruby could load
        def newest(folders = FOLDERS)
          return if musl?

          found = folders.flat_map { |folder| Dir.glob(File.join(folder, FILE)) }.uniq { |path| File.realpath(path) }
          found.map { |path| new(path) }.select(&:ours?).max_by(&:number)
        rescue SystemCallError
          nil
        end

        # @return [Boolean] its malloc is not made to be replaced
        def musl? = RUBY_PLATFORM.include?("musl")
      end

      # @return [String]
      attr_reader :path

      def initialize(path)
        @path = path
      end

      # @return [String, nil] "5.3.0"
      def version = (number.join(".") if number.any?)

      # @return [Boolean]
      def safe? = number.any? && (number.first(2) <=> SAFE) >= 0

      # @return [Boolean] it is for the same kind of process as this one
      def ours? = head.start_with?("\x7fELF".b) && kind(head) == kind(File.binread("/proc/self/exe", 64))

      # @return [Array<Integer>] empty where it does not say
      def number = @number ||= File.binread(path, LARGEST)[VERSION].to_s.split("-").first.to_s.split(".").map(&:to_i)

      private

      def head = @head ||= File.binread(path, 64).to_s
      def kind(head) = [head[KIND], head[MACHINE]]
    end
  end
end

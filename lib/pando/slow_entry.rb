# frozen_string_literal: true

require "pando/errors"
require "pando/line_writer"
require "pando/sys"

module Pando
  # Formats the entries of the slow log and appends them to its file. Owned by an HTTP::SlowLog, in a worker; its terms
  # are read in the monitor as well.
  #
  # It takes no lock, because a worker calls it in a signal handler.
  #
  # @api private
  class SlowEntry
    # The configuration: seconds until the first entry, the file, and :text or :json.
    Terms = Struct.new(:seconds, :path, :format) do
      # @return [Terms, nil] nil: there is no slow log
      def self.of(config)
        new(config.slow_log, config.slow_log_file, config.log_format) if config.slow_log
      end
    end

    # Bytes of an entry. One write of this size stays together in a file that is opened for appending.
    LIMIT = 32_768
    # Characters of a value and of a line of the stack.
    LONGEST = 1000
    LINE = 500
    # Entries in a second.
    RATE = 5
    # Bytes of the file that a reader is shown.
    TAIL = 262_144
    FLAGS = File::WRONLY | File::APPEND | File::CREAT | File::NONBLOCK | File::NOCTTY
    MODE = 0o640

    # The file of a slow log cannot be shown. The message says why.
    class Unreadable < Error; end

    # Reads the newest entries of a slow log. The first one may lack its beginning.
    #
    # @raise [Unreadable] it is no regular file, or cannot be read
    def self.newest(path)
      raise Unreadable, "there is no file #{path}. The next slow request creates it" unless File.exist?(path)
      raise Unreadable, "#{path} is no regular file, so its entries cannot be shown" unless File.file?(path)

      File.open(path) do |file|
        skipped = file.size - TAIL
        if skipped.positive?
          file.seek(skipped)
          file.gets
        end
        file.read(TAIL)
      end || ""
    rescue SystemCallError => e
      raise Unreadable, "the slow log cannot be read: #{e.message}"
    end

    # @return [Integer] entries that could not be written, or were too many, since the last one that was written
    attr_reader :lost

    def initialize(terms)
      require "json" if terms.format == :json # a signal handler must not load code
      require "pando/telemetry/printable"
      @terms = terms
      @lost = @count = 0
      @second = nil
    end

    # @param stack [Array<String>, nil]
    # @return [Boolean] whether it was written
    def write(facts, stack = nil)
      return left_out unless allowed?

      facts = { time: Time.now.utc.strftime("%FT%T.%3NZ"), **facts, left_out: @lost.nonzero? }.compact
      append(fit(facts, stack)) ? (@lost = 0).zero? : lose
    rescue SystemCallError, IOError
      lose
    end

    private

    # Counts like a lost line of the log.
    def lose
      LineWriter.lost += 1
      left_out
    end

    def left_out
      @lost += 1
      false
    end

    def allowed?
      second = Sys.now.to_i
      @count = 0 unless @second == second
      @second = second
      (@count += 1) <= RATE
    end

    # A fifo without a reader refuses to open (ENXIO), and a full pipe to be written.
    def append(text)
      file = File.new(@terms.path, FLAGS, MODE)
      file.syswrite(text) == text.bytesize
    ensure
      file&.close
    end

    # Removes frames from the middle until the entry is small enough.
    def fit(facts, stack)
      stack = stack&.map { |line| line.dup.force_encoding(Encoding::UTF_8).scrub("?")[0, LINE] }
      text = render(facts, stack)
      keep = stack ? stack.size : 0
      while text.bytesize > LIMIT && keep > 2
        keep = keep * 3 / 4
        text = render(facts, cut(stack, keep))
      end
      text
    end

    def cut(stack, keep)
      half = keep / 2
      [*stack.first(half), "... #{stack.size - (2 * half)} frames left out ...", *stack.last(half)]
    end

    def render(facts, stack)
      if @terms.format == :json
        return "#{JSON.generate(stack ? facts.merge(stack: stack) : facts, ascii_only: true)}\n"
      end

      head = facts.map { |key, value| "#{key}=#{plain(value)}" }.join(" ")
      ["#{head}\n", *stack&.map { |line| "    #{Telemetry::Printable.escape(line, LINE)}\n" }].join
    end

    # A path comes from a client: it must neither end the line nor steer the terminal that shows the file.
    def plain(value)
      text = Telemetry::Printable.escape(value, LONGEST)
      text.match?(/[ "]/) ? "\"#{text.gsub('"', '\\"')}\"" : text
    end
  end
end

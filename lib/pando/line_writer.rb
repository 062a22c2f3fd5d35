# frozen_string_literal: true

require "pando/sys"

module Pando
  # Puts whole lines onto a descriptor that other processes write to as well, most often stderr, and never waits for its
  # reader. What is not taken at once is kept, up to a bound, for {#flush}; beyond that it is lost, and counted.
  #
  # Whatever a pipe takes at once it keeps together, so that no line is torn by another process's. In a file that is
  # opened for appending, all that is written together stays so. A reader that is gone is no reason to die.
  #
  # Takes no lock that anybody waits for: a trap handler may write. Each process has its own, made or inherited.
  #
  # @api private
  class LineWriter
    # Bytes that a pipe keeps together: PIPE_BUF of Linux.
    AT_ONCE = 4096
    # Bytes that wait for a slow reader.
    ROOM = 65_536
    # Bytes of a line where nothing else limits them.
    LONGEST = 32_768
    CUT = "…\n"

    @lost = 0
    @due = 0

    class << self
      # @return [Integer] lines that this process has lost so far, and those before it that it was forked from
      attr_accessor :lost
      # @return [Integer] those of them that nothing has been written about
      attr_accessor :due
    end

    # @param io [IO, #syswrite]
    # @param said [#call, nil] told the number of lost lines when the line about them has been written
    # @yieldparam lines [Integer] how many were lost
    # @yieldreturn [String] the line that says so, as soon as something can be written again
    def initialize(io, said: nil, &note)
      @io = io
      @said = said
      @note = note || ->(lines) { "pando: #{lines} log lines lost\n" }
      begin_anew
    end

    # @return [Integer] bytes that a line may have
    def longest_line = divided? ? AT_ONCE - 1 : LONGEST

    # @param text [String] whole lines
    # @return [nil]
    def write(text)
      flush
      room_for?(text) ? @waiting.push(short(text)) && flush : lose(text)
    end

    # Writes what has been kept, as far as that is taken now.
    #
    # @param patience [Float] seconds that it may take; whoever has nothing else to do gives some
    # @return [nil]
    def flush(patience = 0.0)
      begin_anew unless @pid == Process.pid # the lines of our parent are its own to write
      deadline = Sys.now + patience
      nil while drain && @waiting.any? && wait(deadline - Sys.now)
    end

    private

    def begin_anew
      @pid = Process.pid
      @waiting = []
      @unsaid = 0
      @torn = false
      @writing = Mutex.new
    end

    # Once something is lost, nothing is kept until that has been said: the gap is where it says.
    def room_for?(text)
      @unsaid.zero? && (@waiting.empty? || @waiting.sum(&:bytesize) + text.bytesize <= ROOM)
    end

    def lose(text)
      lines = text.count("\n")
      @unsaid += lines
      LineWriter.lost += lines
      LineWriter.due += lines
      nil
    end

    # One thread at a time, and no handler within it: whoever comes meanwhile leaves its lines to be written by it.
    # @return [Boolean] whether it was ours to do
    def drain
      ours = @writing.try_lock
      nil while ours && step
      ours
    ensure
      @writing.unlock if ours
    end

    # @return [Boolean] whether there may be more to do
    def step
      return say_what_is_lost if @waiting.empty?

      rest = put(@waiting.first)
      return false if rest.nil?

      rest.empty? ? @waiting.shift : @waiting[0] = rest
      true
    rescue SystemCallError, IOError
      lose(@waiting.shift)
      true
    end

    def say_what_is_lost
      return false if @unsaid.zero?

      lines = @unsaid
      return false unless put(@note.call(lines))

      @unsaid -= lines
      LineWriter.due -= lines
      @said&.call(lines)
      true
    rescue SystemCallError, IOError
      false
    end

    # @return [String, nil] what is left to be written; nil: nothing is taken now
    def put(text)
      piece = portion(text)
      written = @torn ? emit("\n#{piece}") : emit(piece)
      return unless written

      written -= 1 if @torn && written.positive?
      @torn = written < piece.bytesize
      lose(piece.byteslice(written..)) if @torn # not continued: another process's line may be behind it by now
      text.byteslice(piece.bytesize..)
    end

    # As many whole lines as stay together.
    def portion(text)
      return text unless divided? && text.bytesize >= AT_ONCE # with room for the end of a torn line

      text.byteslice(0, text.b.rindex("\n", AT_ONCE - 2) + 1)
    end

    # Lines that have to fit into a portion.
    def short(text)
      return text unless divided? && text.bytesize >= AT_ONCE

      text.lines.map do |line|
        line.bytesize < AT_ONCE ? line : line.byteslice(0, AT_ONCE - CUT.bytesize - 1).scrub("") << CUT
      end.join
    end

    # @return [Integer, nil] bytes; nil: not now
    def emit(bytes)
      native? ? Sys.write_now(@io, bytes) : @io.syswrite(bytes)
    rescue Errno::EINTR
      retry
    rescue IO::WaitWritable
      nil
    end

    def native? = @io.is_a?(IO) && Sys.respond_to?(:write_now)

    # @return [Boolean] whether what is written together may be divided by others
    def divided?
      native? && !@io.stat.file?
    rescue SystemCallError, IOError
      true # it is closed
    end

    # @return [Boolean] whether it is worth another try
    def wait(seconds)
      seconds.positive? && @io.is_a?(IO) && !IO.select(nil, [@io], nil, seconds).nil?
    rescue SystemCallError, IOError
      false
    end
  end
end

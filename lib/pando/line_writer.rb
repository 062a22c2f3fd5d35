# frozen_string_literal: true

require "pando/sys"

module Pando
  # Writes whole lines to a descriptor that other processes write to as well, usually stderr, and never blocks on a slow
  # reader. Lines that the descriptor does not accept at once are kept for {#flush}, up to a limit. Beyond that they are
  # lost, and counted.
  #
  # A pipe keeps writes of up to PIPE_BUF bytes together, so no line is torn by another process's output. In a file that
  # is opened for appending, each write stays together. A reader that has gone away raises no error.
  #
  # It never waits for a lock, so a trap handler may write. Each process has its own writer, created or inherited.
  #
  # @api private
  class LineWriter
    # The largest write that a pipe keeps together: Linux' PIPE_BUF.
    AT_ONCE = 4096
    # Bytes that may wait for a slow reader.
    ROOM = 65_536
    # The most bytes of a line if nothing else limits it.
    LONGEST = 32_768
    CUT = "…\n"

    @lost = 0

    class << self
      # @return [Integer] lines lost so far by this process and by the ancestors it was forked from
      attr_accessor :lost
    end

    # @param said [#call, nil] called with the number of lost lines once the line about them is written
    # @yieldreturn [String] the line that reports them, written as soon as possible
    def initialize(io, said: nil, &note)
      @io = io
      @said = said
      @note = note || ->(lines) { "pando: #{lines} log lines lost\n" }
      begin_anew
    end

    # @return [Integer] the most bytes that a line may have
    def longest_line = divided? ? AT_ONCE - 1 : LONGEST

    def write(text)
      flush
      room_for?(text) ? @waiting.push(short(text)) && flush : lose(text)
    end

    # Writes as much of the kept lines as the descriptor accepts now.
    #
    # @param patience [Float] seconds that it may take; a caller with nothing else to do allows some
    def flush(patience = 0.0)
      begin_anew unless @pid == Process.pid # the parent writes its own lines
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

    # Once a line is lost, nothing is kept until the loss is reported, so that the report stands at the gap.
    def room_for?(text)
      @unsaid.zero? && (@waiting.empty? || @waiting.sum(&:bytesize) + text.bytesize <= ROOM)
    end

    def lose(text)
      lines = text.count("\n")
      @unsaid += lines
      LineWriter.lost += lines
      nil
    end

    # Runs in one thread at a time, and in no signal handler meanwhile. A thread that finds the lock taken leaves its
    # lines to the holder.
    # @return [Boolean] whether this thread had the lock
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
      @said&.call(lines)
      true
    rescue SystemCallError, IOError
      false
    end

    # @return [String, nil] the rest of the text; nil: the descriptor accepts nothing now
    def put(text)
      piece = portion(text)
      written = @torn ? emit("\n#{piece}") : emit(piece)
      return unless written

      written -= 1 if @torn && written.positive?
      @torn = written < piece.bytesize
      lose(piece.byteslice(written..)) if @torn # not continued: another process may have written since
      text.byteslice(piece.bytesize..)
    end

    # As many whole lines as a pipe keeps together.
    def portion(text)
      return text unless divided? && text.bytesize >= AT_ONCE # leaves room for the end of a torn line

      text.byteslice(0, text.b.rindex("\n", AT_ONCE - 2) + 1)
    end

    # Truncates lines that are longer than a portion.
    def short(text)
      return text unless divided? && text.bytesize >= AT_ONCE

      text.lines.map do |line|
        line.bytesize < AT_ONCE ? line : line.byteslice(0, AT_ONCE - CUT.bytesize - 1).scrub("") << CUT
      end.join
    end

    # @return [Integer, nil] bytes written; nil: not writable now
    def emit(bytes)
      native? ? Sys.write_now(@io, bytes) : @io.syswrite(bytes)
    rescue Errno::EINTR
      retry
    rescue IO::WaitWritable
      nil
    end

    def native? = @io.is_a?(IO) && Sys.respond_to?(:write_now)

    # @return [Boolean] whether another process's output may divide a large write
    def divided?
      native? && !@io.stat.file?
    rescue SystemCallError, IOError
      true # it is closed
    end

    # @return [Boolean] whether to try again
    def wait(seconds)
      seconds.positive? && @io.is_a?(IO) && !IO.select(nil, [@io], nil, seconds).nil?
    rescue SystemCallError, IOError
      false
    end
  end
end

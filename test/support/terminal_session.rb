# frozen_string_literal: true

require "io/console"
require "pty"
require "support/waiting"

module Support
  # A program on its own terminal, with a user who reads and types.
  #
  #     session = TerminalSession.new({ "PORT" => "3000" }, "bin/rails", "server", folder: app.folder)
  #     session.wait_for(/Listening/)
  #     session.type("\x03")
  #     session.wait_for_exit
  class TerminalSession
    include Waiting

    CONTROL_SEQUENCE = /\e\[[0-9;?]*[a-zA-Z]/
    # A line editor asks the terminal for the position of its cursor.
    WHERE = "\e[6n"
    HERE = "\e[1;1R"

    attr_reader :pid

    # @param env [Hash{String => String, nil}]
    def initialize(env, *command, folder:)
      @text = +""
      @bytes = +"".b
      @lock = Mutex.new
      @reader, @writer, @pid = PTY.spawn(env.merge("TERM" => "xterm"), *command, chdir: folder)
      @waiter = Process.detach(@pid)
      @thread = Thread.new { read }
    end

    # @return [String] all that was printed, without colours
    def text = @lock.synchronize { @text.dup }

    # @return [String] the same, as it was sent
    def bytes = @lock.synchronize { @bytes.dup }

    def resize(lines, columns) = @writer.winsize = [lines, columns]
    def type(keys) = @writer.write(keys)
    def line(text) = type("#{text}\n")

    # Waits for output after this call, or while the block (if any) runs.
    def wait_for(pattern)
      from = block_given? ? text.size : 0
      yield if block_given?
      wait_until(message: -> { "#{pattern.inspect} in\n#{text}" }) { text[from..].match(pattern) }
    end

    # @return [Process::Status]
    def wait_for_exit
      wait_until(message: -> { "the end of\n#{text}" }) { @waiter.join(0) }
      @waiter.value
    end

    # Kills the program and all processes that it has started on this terminal.
    def close
      kill
      @waiter.join
      @writer.close
      @thread.join
    end

    private

    def kill
      Process.kill("KILL", -@pid) if @waiter.alive?
    rescue Errno::ESRCH
      nil # It has ended since.
    end

    def read
      loop do
        part = @reader.readpartial(4096)
        @writer.write(HERE) if part.include?(WHERE)
        @lock.synchronize { @bytes << part.b }
        @lock.synchronize { @text << part.force_encoding("UTF-8").scrub.gsub(CONTROL_SEQUENCE, "") }
      end
    rescue SystemCallError, IOError # EIO at the end
      @reader.close
    end
  end
end

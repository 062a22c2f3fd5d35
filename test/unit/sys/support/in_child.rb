# frozen_string_literal: true

require "json"

module SysSupport
  # Code that changes a whole process (its children, signals, limits) runs in a child, which reports the result.
  module InChild
    PATIENCE = 60 # seconds

    # @return the block's return value in the child, converted to JSON and back
    # @raise [RuntimeError] the block raised
    def in_child(&block)
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        writer.syswrite("#{JSON.generate(answer_of(&block))}\n")
      ensure
        exit!(0)
      end
      writer.close
      answer = answer_from(reader)
      raise answer["error"] if answer["error"]

      answer["value"]
    ensure
      reader.close
      end_child(pid)
    end

    # The name of the exception that the block raises: "Errno::EPERM".
    def error_of
      yield
      nil
    rescue StandardError => e
      e.class.name
    end

    # For a comparison within one child: the garbage collector would close what earlier tests have left behind.
    def open_descriptors
      GC.disable
      Dir.children("/proc/self/fd").size
    end

    # A pipe that is at its end once its other side is closed everywhere.
    def ended?(reader, patience = PATIENCE)
      reader.wait_readable(patience) ? reader.read.empty? : flunk("the pipe did not end within #{patience} s")
    end

    # The last line of a child: nothing of the test run may continue in it.
    def leave(status = 0) = exit!(status)

    private

    def answer_of
      { "value" => yield }
    rescue Exception => e # rubocop:disable Lint/RescueException
      { "error" => "in the child: #{e.full_message(highlight: false)}" }
    end

    def answer_from(reader)
      flunk("no answer from the child within #{PATIENCE} s") unless reader.wait_readable(PATIENCE)
      line = reader.gets
      line ? JSON.parse(line) : flunk("the child ended without an answer")
    end

    def end_child(pid)
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end
end

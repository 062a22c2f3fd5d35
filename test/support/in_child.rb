# frozen_string_literal: true

require "json"

module Support
  # For what concerns a whole process: its descriptors, its threads.
  module InChild
    # Runs the block in a forked child.
    #
    # @return [Object] what the block returned, as JSON tells it, with symbols for keys
    # @raise [RuntimeError] the block raised
    def in_child
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        answer = begin
          { answer: yield }
        rescue Exception => error # rubocop:disable Lint/RescueException
          { error: [error.class, error.message, *error.backtrace].join("\n") }
        end
        writer.write(JSON.generate(answer))
        writer.close
      ensure
        exit!(0)
      end
      writer.close
      answer = JSON.parse(reader.read, symbolize_names: true)
      answer.key?(:answer) ? answer[:answer] : raise("in the child: #{answer[:error]}")
    ensure
      reader.close
      Process.wait(pid)
    end
  end
end

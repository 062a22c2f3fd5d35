# frozen_string_literal: true

require "json"
require "socket"

module Pando
  module Doctor
    # The signal on which a worker writes its stack, even if it is stuck in C: a real-time one that nobody uses.
    PLACE_SIGNAL = 50

    # Code that runs inside the examined processes.
    module Subject
      # Carries reports from the examined processes to the doctor: datagrams on a UNIX socket in the stage's folder, so
      # that the reports of two processes never mix. The monitor and a cold mold open it, their children inherit it. A
      # large report goes into a file, and the file's name over the wire.
      class Wire
        NAME = "wire"
        LARGE = 32_768 # bytes

        attr_reader :folder

        def initialize(folder)
          @folder = folder
          @socket = Socket.new(:UNIX, :DGRAM)
          @socket.connect(Addrinfo.unix(File.join(folder, NAME)))
        end

        # @param fact [Hash] of values that JSON knows, or that {clean} makes so
        # @return [nil] even if the doctor no longer listens
        def tell(fact)
          text = JSON.generate(Wire.clean(fact))
          text = JSON.generate(file: store(text)) if text.bytesize > LARGE
          @socket.send(text, 0)
          nil
        rescue SystemCallError
          nil
        end

        def ios = [@socket]

        # JSON needs UTF-8, but a path or a message may hold any bytes.
        def self.clean(value)
          case value
          when Hash then value.transform_values { |each| clean(each) }
          when Array then value.map { |each| clean(each) }
          when String then value.dup.force_encoding(Encoding::UTF_8).scrub("?")
          when Symbol, Numeric, true, false, nil then value
          when Exception
            clean(class: value.class.name, message: value.message.lines(chomp: true).first,
                  stack: value.backtrace.to_a.filter_map { |frame| frame[/\A.+?:\d+/] })
          else clean(value.to_s)
          end
        end

        private

        def store(text)
          @stored = @stored.to_i + 1
          name = File.join(folder, "fact-#{Process.pid}-#{@stored}.json")
          File.write(name, text)
          name
        end
      end
    end
  end
end

# frozen_string_literal: true

module Pando
  module Telemetry
    class FirstRequest
      # A file that one of several processes writes, and that appears under its name when it is complete.
      #
      # @api private
      class Artefact
        # @return [String] its final name
        attr_reader :path
        # @return [String] its name until it is complete
        attr_reader :part

        # @param path [String]
        # @return [Artefact, nil] nil if the file exists, or another process is writing it
        def self.claim(path)
          part = "#{path}.part"
          File.open(part, File::WRONLY | File::CREAT | File::EXCL) { nil }
          return new(path, part) unless File.exist?(path)

          File.delete(part) # another process has just finished it
          nil
        rescue Errno::EEXIST
          nil
        end

        def initialize(path, part)
          @path = path
          @part = part
        end

        def finish
          File.rename(part, path)
        end

        def give_up
          File.delete(part)
        rescue SystemCallError
          nil # the caller has already reported the error
        end
      end
    end
  end
end

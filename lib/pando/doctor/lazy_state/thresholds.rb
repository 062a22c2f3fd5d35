# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # From what size on something is worth a line of a report. docs/lazy-state.md lists them.
      module Thresholds
        # Bytes from which what one line keeps is noted.
        NOTE = 4096
        # Bytes from which it is a warning: with each worker, that much is neither shared nor fast.
        WARNING = 256 * 1024
        # Files from which loading is a warning.
        FILES = 20
        # Methods from which those defined by a line outside of the application are noted.
        METHODS = 10

        # @return [Symbol] severity of what was built once
        def self.severity(bytes) = bytes >= WARNING ? :warning : :note

        # @return [String] for a human
        def self.size(bytes)
          return "#{bytes} bytes" if bytes < 1024

          value, unit = bytes < 1024 * 1024 ? [bytes / 1024.0, "KiB"] : [bytes / 1_048_576.0, "MiB"]
          format(value < 10 ? "%<value>.1f %<unit>s" : "%<value>.0f %<unit>s", value: value, unit: unit)
        end

        # @return [String] "1 file", "12,345 files"
        def self.count(number, noun)
          "#{number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")} #{noun}#{"s" unless number == 1}"
        end
      end
    end
  end
end

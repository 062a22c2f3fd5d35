# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # What happens when a child ends: files that it deletes though an ancestor made them, and
      # at_exit handlers that an ancestor registered.
      #
      # @api private
      class Endings < Check
        def findings = deletions + handlers

        private

        def deletions
          evidence.records(:deletion).uniq { |record| record[:location] }.map do |record|
            name = "file #{File.basename(record[:path]).gsub(/\d{4,}[\w-]*/, "*")}"
            finding(:file_deleted, subject: name, location: record[:location],
                                   message: "#{name}, which an ancestor made, was deleted by a child at its end")
          end
        end

        def handlers
          evidence.records(:exit_handler).uniq { |record| record[:location] }.map do |record|
            finding(:exit_handler, subject: "an at_exit handler", location: record[:location],
                                   severity: severity_of(record[:location]),
                                   message: "an at_exit handler ran in processes that did not register it")
          end
        end
      end
    end
  end
end

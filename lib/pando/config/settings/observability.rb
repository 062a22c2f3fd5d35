# frozen_string_literal: true

module Pando
  class Config
    # What Pando profiles in the application.
    Settings.group "Profiling" do
      setting :first_request_profile,
              type: Types::Truth.new, default: false,
              help: "Profile the first request that each generation serves."

      setting :first_request_profile_folder,
              type: Types::Path.new("a directory"), default: "tmp/profiles", within: :first_request_profile,
              help: "The directory for the profiles, one file per generation."
    end

    # What the server shows of itself.
    Settings.group "Observability" do
      setting :access_log,
              type: Types::OrOff.new(Types::PathOrStdout.new("a file, or :stdout", symbols: %i[stdout])), default: nil,
              traits: %i[reactor],
              help: "The file to which the reactor writes a line for each request, or :stdout.",
              check: Settings::NEEDS_REACTOR

      setting :access_log_format,
              type: Types::Choice.new(:common, :combined, :json), default: :combined,
              within: :access_log, traits: %i[reactor second],
              help: "How a line is written: as Apache and nginx do (`common`, `combined`), or as a JSON object."

      setting :access_log_sample,
              type: Types::Share.new, default: 1.0, within: :access_log, traits: %i[reactor],
              help: "The share of requests that are logged. Responses with a status of 500 or more are always logged."

      setting :slow_log,
              type: Types::OrOff.new(Types::Seconds.new), default: nil,
              help: "Write the stack of each request that runs for longer than this, and again at each doubling."

      setting :slow_log_file,
              type: Types::Path.new("a file", symbols: []), default: "log/slow.log",
              within: :slow_log, traits: %i[second],
              help: "The file to which the workers append the entries."
    end
  end
end

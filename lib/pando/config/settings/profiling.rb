# frozen_string_literal: true

module Pando
  class Config
    # What Pando profiles in the application.
    Settings.group "Profiling" do
      setting :first_request_profile,
              type: Types::Truth.new, default: false,
              help: "Profile the first request that each generation serves.",
              notes: "Pando uses Vernier or StackProf, whichever is in the bundle. See [profiling](profiling.md).",
              example: 'first_request_profile true, folder: "log/profiles"'

      setting :first_request_profile_folder,
              type: Types::Text.new("the path of a directory", /\A[^\0]+\z/), default: "tmp/profiles",
              within: :first_request_profile, keyword: :folder,
              resolve: ->(path, directory) { File.expand_path(path, directory) },
              help: "The directory for the profiles, one file per generation."
    end
  end
end

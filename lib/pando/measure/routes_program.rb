# frozen_string_literal: true

# Runs in a separate process. Loads the Rails application of the working directory, and writes the paths of its GET
# routes without parameters to the given file.

require "json"
require "pando/doctor/subject/rails_app"
require File.expand_path("config/environment")

application = Rails.application
application.reload_routes_unless_loaded if application.respond_to?(:reload_routes_unless_loaded)
File.write(ARGV.fetch(0), JSON.generate(Pando::Doctor::Subject::RailsApp.routes(application)))
exit!(true) # threads that the application has started may run for ever

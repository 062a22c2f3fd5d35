# frozen_string_literal: true

# A process of its own: loads the Rails application of the working directory, and writes the paths of its GET routes
# that need no parameters to the file that is named.

require "json"
require "pando/doctor/subject/rails_app"
require File.expand_path("config/environment")

application = Rails.application
application.reload_routes_unless_loaded if application.respond_to?(:reload_routes_unless_loaded)
File.write(ARGV.fetch(0), JSON.generate(Pando::Doctor::Subject::RailsApp.routes(application)))
exit!(true) # what the application has started may go on for ever

# frozen_string_literal: true

# What Redmine writes goes into the folder of the run; its assets were compiled once for all.
folder = ENV.fetch("LAB_FOLDER")
config.paths["log"] = File.join(folder, "production.log")
config.cache_store = :file_store, File.join(folder, "cache")
config.assets.redmine_detect_update = ENV.key?("LAB_COMPILE_ASSETS")
